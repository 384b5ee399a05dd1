"""A gate's findings as JUnit XML, which pipelines show beside their tests."""

from xml.etree.ElementTree import Element, SubElement, tostring

from fedassay.comparison.gate import GateResult, Verdict


def junit_xml(result: GateResult) -> str:
    """One test case for each requirement; what cannot be told is an error, so that it is seen.

    >>> from fedassay.comparison.gate import Finding
    >>> from fedassay.estimate import Interval
    >>> failed = Finding("roc_auc >= 0.9", Verdict.FAIL, 0.8, Interval(0.79, 0.81))
    >>> print(junit_xml(GateResult((failed,), 0.95)))
    <testsuites><testsuite name="fedassay check" tests="1" failures="1" errors="0">...
    """
    verdicts = [finding.verdict for finding in result.findings]
    suites = Element("testsuites")
    suite = SubElement(
        suites,
        "testsuite",
        name="fedassay check",
        tests=str(len(verdicts)),
        failures=str(verdicts.count(Verdict.FAIL)),
        errors=str(verdicts.count(Verdict.CANNOT_TELL)),
    )
    kinds = {Verdict.FAIL: "failure", Verdict.CANNOT_TELL: "error"}
    for finding in result.findings:
        case = SubElement(suite, "testcase", classname="fedassay.check", name=finding.requirement)
        if finding.verdict in kinds:
            SubElement(
                case, kinds[finding.verdict], type=finding.verdict.value, message=finding.sentence()
            )
    return tostring(suites, encoding="unicode")
