"""A call in another thread."""

import threading


def in_thread(function):
    """Run a function in another thread; return what it raised."""
    raised = []

    def run():
        try:
            function()
        except Exception as error:  # noqa: BLE001 - for the caller to look at
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0] if raised else None
