"""Measure boards of any origin by the metrics of other papers, and hold them against STG."""
