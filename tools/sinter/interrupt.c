/* Ctrl-C. The one piece of state that is not handed around: a signal handler gets no context.
 * The handler touches atomics and a pipe only, and sinter_session_cancel does no more. Any thread
 * may be the one that runs it, so a pipe, not EINTR, wakes who waits for the terminal. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static struct {
    volatile sig_atomic_t count;
    _Atomic(sinter_session *) session;
    int wake[2]; /* 0, 0: not made yet */
} interrupted;

static void on_interrupt(int signal_number)
{
    sinter_session *session = atomic_load(&interrupted.session);
    int saved = errno;
    (void)signal_number;
    if (interrupted.count++ && session)
        _exit(130);
    if (session)
        sinter_session_cancel(session);
    ssize_t n = write(interrupted.wake[1], "", 1); /* full: then it is awake anyway */
    (void)n;
    errno = saved;
}

void interrupt_watch(sinter_session *session)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    if (!interrupted.wake[1] && pipe2(interrupted.wake, O_CLOEXEC | O_NONBLOCK))
        interrupted.wake[0] = interrupted.wake[1] = -1; /* Ctrl-C then waits for a key */
    sigemptyset(&action.sa_mask);
    atomic_store(&interrupted.session, session);
    sigaction(SIGINT, &action, NULL);
}

bool interrupt_wait(int fd)
{
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN},
                          {.fd = interrupted.wake[0], .events = POLLIN}};
    while (!interrupted.count && poll(p, 2, -1) < 0 && errno == EINTR)
        ;
    return !interrupted.count;
}

int interrupt_count(void)
{
    return (int)interrupted.count;
}

void interrupt_clear(void)
{
    char drain[64];
    interrupted.count = 0;
    while (interrupted.wake[1] > 0 && read(interrupted.wake[0], drain, sizeof drain) > 0)
        ;
}
