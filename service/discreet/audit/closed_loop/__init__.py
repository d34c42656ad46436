"""Two worlds that differ in everything one person did, played through the shipped decisions.

    story      what happens, step by step, and what the person does in each of the two worlds
    stories    those that every family with feedback is put through
    stage      one world: a store, workers, a clock, and a record of everything that can be seen
    coupled    both worlds in step, forced into the same view: what that costs, exactly
    losses     what it cost, what was charged, and the verdict
    sampled    many runs of both worlds: a lower bound on epsilon, from everything that is seen
    faulty     mistakes that these examinations must notice
    claiming   from stories to claims

Everybody's answers are seen, every released model, the moment of every release, and how the
person's account of answers stands. The account of feedback is not: it tells how often the person
sent feedback, which is private; it is shown to the calling application, which knows.
"""
