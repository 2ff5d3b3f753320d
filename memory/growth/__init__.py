"""Growth: proposals of an agent, their gates, and the verdicts of people.

Limits: a proposal changes nothing by itself, and no text of a message or a model is a verdict.
Read `gates` first: the rule by which a proposal holds.
"""
