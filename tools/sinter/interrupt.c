/* Ctrl-C. The one piece of state that is not handed around: a signal handler gets no context.
 * The handler touches atomics only, and sinter_session_cancel does so too. */
#include "tool.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static struct {
    volatile sig_atomic_t count;
    _Atomic(sinter_session *) session;
} interrupted;

static void on_interrupt(int signal_number)
{
    sinter_session *session = atomic_load(&interrupted.session);
    (void)signal_number;
    if (interrupted.count++ && session)
        _exit(130);
    if (session)
        sinter_session_cancel(session);
}

void interrupt_watch(sinter_session *session)
{
    struct sigaction action = {.sa_handler = on_interrupt}; /* no SA_RESTART: reads are woken */
    sigemptyset(&action.sa_mask);
    atomic_store(&interrupted.session, session);
    sigaction(SIGINT, &action, NULL);
}

int interrupt_count(void)
{
    return (int)interrupted.count;
}

void interrupt_clear(void)
{
    interrupted.count = 0;
}
