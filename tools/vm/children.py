"""Processes that end with us, even if we are killed with SIGKILL."""
import contextlib
import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1
ENDINGS = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGALRM}
libc = ctypes.CDLL(None)


@contextlib.contextmanager
def endings_wait():
    """Signals that end us wait for the end of the block: whoever starts a child in it knows the child by
    then, and can end it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_us():
    """What a child has to do before it starts its program (subprocess's preexec_fn)."""
    parent = os.getpid()

    def in_child():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # already too late for a signal
            os.kill(os.getpid(), signal.SIGKILL)
    return in_child
