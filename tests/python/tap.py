# SPDX-License-Identifier: Apache-2.0
"""TAP of unittest's tests."""
import sys
import unittest


class _Tap(unittest.TestResult):
    """One line for each test: its method's name is the sentence."""

    def _line(self, test, word, rest=""):
        print(f"{word} {self.testsRun} - {test.id().split('.')[-1][5:].replace('_', ' ')}{rest}", flush=True)

    def addSuccess(self, test):
        self._line(test, "ok")

    def addSkip(self, test, reason):
        self._line(test, "ok", f" # SKIP {reason}")

    def _failed(self, test, error):
        self._line(test, "not ok")
        print("# " + self._exc_info_to_string(error, test).replace("\n", "\n# "))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._failed(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self._failed(test, err)


def main():
    tests = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = _Tap()
    tests.run(result)
    print(f"1..{result.testsRun}")
    sys.exit(not result.wasSuccessful())
