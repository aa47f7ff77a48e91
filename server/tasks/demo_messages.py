"""The demo corpus for small real models: invented messages to a hospital's desks. Nobody wrote them.

Six desks share the messages. A message belongs to the desk of its first concern; three in ten mention a second concern,
of any desk, in passing. A desk has more concerns than its public description names, as in any office, and these are what
only the hospitals know. Patients of different hospitals write differently: plainly, briefly, politely. Public texts are
messages to other places, such as a library or a garage, with the place as their topic. Small models can write such
messages, which they cannot do with the notes of `demo_notes`.
"""

# ruff: noqa: E501 — a place is one line of the table
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from common.domain import Record
from common.rng import experiment
from server.domain import Example, Task, Wording

TASK = Task(
    name="demo_messages",
    kind="question to a hospital",
    labels={
        "appointments": "booking, moving or cancelling a visit",
        "pharmacy": "prescriptions, refills and tablets",
        "accounts": "bills, payments and insurance",
        "laboratory": "blood tests and their results",
        "records office": "copies of notes, letters and certificates",
        "site services": "parking, rooms, food and lost property",
    },
    wording=Wording(writer="a patient", label="desk", plural="Questions to a hospital"),
)
LABELS = tuple(TASK.labels)

# Concerns of each desk; the first half are what the public description says, the second half only the hospitals know.
_CONCERNS_TABLE = {
    "appointments": """
book a first visit with the {doctor} | move my visit to the {doctor} from {day} to {other} | cancel my check-up on {day}
get an earlier visit with the {doctor} | talk to the {doctor} by phone instead | find out how long the wait for the {doctor} is
have an interpreter with me at my visit | bring my {relative} along to the {doctor} | hand in the referral from my family doctor
""",
    "pharmacy": """
get a refill of my {medicine} | renew the prescription for my {medicine} | take the {medicine} together with food
get a weaker dose of the {medicine} | pick up my {medicine} on {day} | give back the {medicine} that I did not use
get new needles for the insulin pen | get a flu jab before winter | travel by plane with my {medicine}
""",
    "accounts": """
pay the bill from {month} in two parts | get back the money that I was charged twice in {month} | send you my new insurance card
get a receipt for what I paid in {month} | find out why the insurance refused to pay | find out what the operation will cost
change the bank account for my refund | get my taxi fares paid back | get help with the fees, as I have no job
""",
    "laboratory": """
find out if my {test} is back | eat before the {test} on {day} | repeat the {test}
understand the high value in my {test} | drop off a urine sample | have the {test} done at my family doctor's
keep the stool sample in the fridge | find out my blood group | drink coffee before the {test}
""",
    "records office": """
get a copy of my discharge letter | have my notes sent to my new doctor | get a certificate for my employer
correct the date of birth in my file | read the report of my operation | have a form for the pension office signed
get the pictures of my scan on a disc | change my name in the file after the wedding | let my {relative} see my file
""",
    "site services": """
park near the main door | have a room with one bed | complain about the cold food on the ward
find the {thing} that I left on the ward | visit my {relative} in the evening | report that the lift is out of order
watch television in the room | use the wireless internet on the ward | bring flowers for my {relative}
""",
}
_CONCERNS = {
    desk: [concern.strip() for concern in concerns.replace("\n", " | ").split(" | ") if concern.strip()]
    for desk, concerns in _CONCERNS_TABLE.items()
}

# Public texts: places, and what people ask of them.
_PLACES_TABLE = """
library / renew two books | pay the fine for a late book | reserve the new atlas | get a card for my {relative} | find the {thing} that I left there
garage / book a service for my car | find out what new brakes cost | collect the keys on {day} | have the tyres checked | get a copy of the report
landlord / report a leak in the kitchen | pay the rent in two parts | get a certificate for the council | change the name on the door | park behind the house
gym / cancel my membership | move my lesson from {day} to {other} | use the pool on {day} | get a refund for {month} | keep my {thing} in a locker
vet / bring the cat in on {day} | get more tablets for the dog | feed the rabbit before the operation | have the claws cut | find out what the test has shown
school / report that my son is ill | get a copy of the report | talk to the teacher by phone | pay for the school trip | bring my {relative} to the school party
bank / get back the money that I was charged twice in {month} | block my lost card | change my address | get a letter for the tax office | book a visit at the branch
hotel / book a room with two beds | have breakfast at six | cancel our stay on {day} | get a receipt for the firm | have a quiet room
"""
_PLACES = {
    place: concerns.split(" | ")
    for place, concerns in (line.split(" / ") for line in _PLACES_TABLE.strip().splitlines())
}
_FRAMES = (
    ("Can I {}?", "How can I {}?", "I would like to {}.", "Is it possible to {}?"),
    ("I want to {}.", "I need to {}.", "Who can help me to {}?", "Please help me to {}."),
    ("May I {}?", "I wish to {}, please.", "Would it be possible to {}?", "Whom should I ask if I wish to {}?"),
)
_DETAILS = (
    ("I was with you on {day}, {date} {month}.", "It is for my {relative}, who is {age}.", "I am {age}."),
    ("I asked on {day}, {date} {month}.", "I am asking for my {relative}, aged {age}.", "I am {age}, without a car."),
    ("I was in your care on {date} {month}.", "My {relative}, aged {age}, will come with me.", "I am {age} years old."),
)
_IN_PASSING = (
    "Later I would also like to {}.",
    "And soon I also need to {}.",
    "At a later date I may also wish to {}.",
)
_SLOTS = {
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
    "other": ("Saturday", "next week", "the week after", "next month"),
    "month": ("January", "March", "May", "July", "October"),
    "date": tuple(map(str, range(1, 29))),
    "age": tuple(map(str, range(19, 90))),
    "doctor": ("heart doctor", "eye doctor", "skin doctor", "surgeon", "children's doctor", "midwife"),
    "relative": ("mother", "father", "daughter", "husband", "brother", "grandmother"),
    "medicine": ("blood pressure tablets", "inhaler", "insulin", "antibiotics", "painkillers", "eye drops"),
    "test": ("blood test", "cholesterol test", "sugar test", "thyroid test", "iron test"),
    "thing": ("umbrella", "glasses", "phone", "jacket", "bag"),
}
_SECOND_CONCERN, _DETAIL = 0.3, 0.6  # shares of the messages with a second sentence of either kind


def private_messages(hospital: int, count: int, experiment_seed: int) -> list[Record]:
    """Return `count` messages to one hospital, in its patients' style, with all six desks about equally often.

    Args:
        hospital: Number from 0; the remainder modulo 3 determines its patients' style.
        count: Number of messages.
        experiment_seed: Seed. The messages of each hospital and the test messages are independent samples.
    """
    rng = experiment(experiment_seed, "private messages", hospital)
    return [_record(rng, hospital % 3) for _ in range(count)]


def held_out_messages(count: int, experiment_seed: int) -> list[Record]:
    """Return `count` messages for testing, each to one of the first three hospitals, drawn at random."""
    rng = experiment(experiment_seed, "test messages")
    return [_record(rng, int(rng.integers(3))) for _ in range(count)]


def public_messages(count: int, experiment_seed: int) -> list[Example]:
    """Return `count` messages to other places, in every style, with the place as their topic."""
    return list(_public_messages(count, experiment_seed))


@lru_cache(maxsize=2)
def _public_messages(count: int, experiment_seed: int) -> tuple[Example, ...]:
    rng = experiment(experiment_seed, "public messages")
    examples = []
    for _ in range(count):
        place = _one(rng, tuple(_PLACES))
        text = _message(rng, int(rng.integers(3)), _one(rng, _PLACES[place]), _one(rng, _PLACES[place]))
        examples.append(Example(text=text, topic=place))
    return tuple(examples)


def _one(rng: np.random.Generator, choices: Sequence[str]) -> str:
    return choices[int(rng.integers(len(choices)))]


def _record(rng: np.random.Generator, style: int) -> Record:
    desk = _one(rng, LABELS)
    return Record(_message(rng, style, _one(rng, _CONCERNS[desk]), _one(rng, _CONCERNS[_one(rng, LABELS)])), desk)


def _message(rng: np.random.Generator, style: int, concern: str, second: str) -> str:
    """Return one or two sentences: the concern in a frame of the style, and perhaps a second concern or a detail."""
    message, kind = _one(rng, _FRAMES[style]).format(concern), rng.random()
    if kind < _SECOND_CONCERN:
        message += " " + _IN_PASSING[style].format(second)
    elif kind < _SECOND_CONCERN + _DETAIL:
        message += " " + _one(rng, _DETAILS[style])
    return message.format(**{slot: _one(rng, words) for slot, words in _SLOTS.items()})
