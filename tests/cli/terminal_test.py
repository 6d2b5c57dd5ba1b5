"""`sinter run` on a terminal: a conversation, its commands, several lines, Ctrl-C."""
import os
import pty
import re
import select
import shutil
import signal
import sys
import time

PROGRAM = os.environ["SINTER_PROGRAM"]
WORK = os.path.join(os.environ["SINTER_BINARY"], "terminal_test.tmp")
MODEL = os.path.join(WORK, "model.gguf")
results = []
# What the tests are told is no option of the program's, which would say so each time.
for name in [n for n in os.environ if n.startswith("SINTER_")]:
    del os.environ[name]


class Terminal:
    def __init__(self, *args):
        self.text, self.seen = "", 0
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.update(TERM="xterm", XDG_STATE_HOME=WORK, LC_ALL="C.UTF-8")
            os.execv(PROGRAM, [PROGRAM, *args])

    def wait(self, pattern, seconds=60):
        """Reads until the pattern stands in what came since the last wait; None on the end."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.compile(pattern, re.S).search(self.text, self.seen)
            if found:
                self.seen = found.end()
                return found
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:  # the other end is gone
                    data = b""
                if not data:
                    return None
                self.text += data.decode("utf-8", "replace")
        return None

    def send(self, text):
        os.write(self.fd, text if isinstance(text, bytes) else text.encode())

    def end(self):
        self.wait(r"\0")  # comes never: reads to the end
        if not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def check(name, good, terminal):
    results.append(bool(good))
    if not good:
        print(f"FAIL {name}; the terminal shows:\n{terminal.text[-1500:]}")


def conversation():
    t = Terminal("run", MODEL, "-v", "-n", "6", "--temp", "0")
    check("prompt", t.wait(">>> "), t)
    t.send("the rain in Spain\n")
    check("first turn", t.wait(r"cached 0, new (\d+)"), t)
    t.wait(">>> ")
    t.send("and\\\n")
    check("goes on", t.wait(r"\.\.\. "), t)
    t.send("the sea\n")
    found = t.wait(r"cached (\d+), new (\d+)")
    check("second turn", found and int(found[1]) > int(found[2]) > 0, t)
    t.wait(">>> ")
    t.send('"""one\n')
    t.wait(r"\.\.\. ")
    t.send('two"""\n')
    check("block", t.wait(r"cached (\d+)"), t)
    t.wait(">>> ")
    t.send("/help\n")
    check("help", t.wait("/clear"), t)
    t.send("/clera\n")
    check("bad command", t.wait("no command /clera"), t)
    t.wait(">>> ")
    t.send("/clear\n")
    t.wait(">>> ")
    t.send("h\u00e9\n")
    found = t.wait(r"new (\d+), ")
    check("cleared", found and int(found[1]) < 30, t)
    t.wait(">>> ")
    t.send("/exit\n")
    check("summary", t.wait(r"graphs 1 plans \d+ allocs/token 0 "), t)
    check("exit", t.end() == 0, t)


def broken():
    """Sequences of UTF-8 that break off: one '?', and the byte behind them counts."""
    t = Terminal("run", MODEL, "-n", "2", "--temp", "0")
    t.wait(">>> ")
    for sent, shown in ((b"caf\xe9\n", "caf?"), (b"\xe9a\xe2\x82b\n", "?a?b"),
                        (b"\xff\xf0\x9f\xc3\xa9.\n", "??é.")):
        t.send(sent)
        check(f"broken {sent}", t.wait(re.escape(shown) + r"\r\n.*>>> "), t)
    t.send("\x04")
    check("end", t.end() == 0, t)


def interrupts():
    endless = ("run", MODEL, "--temp", "0", "--ignore-eos", "-c", "100000", "-q")
    t = Terminal(*endless)
    t.wait(">>> ")
    t.send("go\n")
    t.wait(r"go\r\n.{8,}")
    t.send("\x03")
    check("stopped answer", t.wait(">>> "), t)
    t.send("\x04")
    check("Ctrl-D", t.end() == 0, t)
    t = Terminal("run", MODEL)
    t.wait(">>> ")
    t.send("half a line\x03")
    check("given up line", t.wait("Ctrl-C again.*>>> "), t)
    t.send("\x03")
    check("second Ctrl-C", t.end() == 130, t)
    t = Terminal(*endless, "go on")
    t.wait(".{8,}")
    t.send("\x03")
    check("one answer", t.end() == 130, t)


def unfinished():
    """Ctrl-D inside a text of several lines: said, and the conversation goes on."""
    t = Terminal("run", MODEL, "-n", "2", "--temp", "0")
    t.wait(">>> ")
    for first, how in (('"""one', '""" ends it'), ('"""', '""" ends it'), ("one\\", "ends it")):
        t.send(first + "\n")
        t.wait(r"\.\.\. ")
        t.send("two")
        t.send("\n" if first[0] == '"' else "\\\n")
        t.wait(r"\.\.\. ")
        t.send("\x04")
        said = t.wait(r"\(not sent: the text was not finished; .*" + how)
        check(f"Ctrl-D after {first}", said, t)
        check("goes on", t.wait(">>> "), t)
    t.send("the rain\n")
    check("answers", t.wait("the rain\r\n.*>>> "), t)
    t.send("\x04")
    check("Ctrl-D ends", t.end() == 0, t)


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    assert os.spawnv(os.P_WAIT, PROGRAM, [PROGRAM, "dummy", "llama-f32", "-o", MODEL]) == 0
    conversation()
    broken()
    interrupts()
    unfinished()
    print(f"terminal: {sum(results)}/{len(results)}")
    shutil.rmtree(WORK)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
