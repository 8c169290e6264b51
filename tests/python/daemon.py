# SPDX-License-Identifier: Apache-2.0
"""The real kvregd on the mock device, on sockets of its own."""
import json
import os
import subprocess
import tempfile
import time

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))


def wait_until(holds):
    """As long as anybody could want to wait. No test may depend on how long that took."""
    for _ in range(300):
        result = holds()
        if result:
            return result
        time.sleep(0.1)
    raise AssertionError("it did not come true")


class Daemon:
    def __init__(self, config=""):
        self._dir = tempfile.TemporaryDirectory(prefix="kvreg-test-")
        os.chmod(self._dir.name, 0o711)
        self.socket = self._dir.name + "/client/kvregd.sock"
        self._admin = self._dir.name + "/admin/admin.sock"
        self._log = open(self._dir.name + "/log", "wb")
        with open(self._dir.name + "/conf", "w") as conf:
            conf.write("[daemon]\nsession_user = 64998:64998\n" + config)
        self._process = subprocess.Popen(
            [BUILD + "/kvregd", "--foreground", "--device", "mock", "--socket", self.socket, "--admin-socket",
             self._admin, "--config", self._dir.name + "/conf"], stdout=self._log, stderr=self._log)
        os.environ["KVREG_SOCKET"] = self.socket
        wait_until(lambda: self.ask("status"))

    def ask(self, question):
        """What kvregctl says, None if it fails."""
        answer = subprocess.run([BUILD + "/kvregctl", question, "--json", "--admin-socket", self._admin],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    def idle(self):
        """Waits until all books are at zero."""
        wait_until(lambda: (lambda s: s["sessions"] == s["granted"] == s["regions"] == 0)(self.ask("status")))

    def end(self):
        self._process.terminate()
        status = self._process.wait(30)
        self._log.close()
        self._dir.cleanup()
        if status != 0:
            raise AssertionError(f"kvregd ended with {status}")
