"""The fake writer model of the test server: it edits captions by a few rules and misbehaves for some captions."""

import re

COLORS = ("red", "blue", "green", "black", "white", "brown")
SEEN = "There one sees "
TWICE = "Two lines.\nThe second."


def caption_of(messages: list[dict]) -> str:
    return messages[0]["content"].rpartition("Caption: ")[2]


def lowered(caption: str) -> str:
    return caption[:1].lower() + caption[1:]


def negative(caption: str) -> str:
    return re.sub(rf"\b({'|'.join(COLORS)})\b", "purple", caption)


def reply(messages: list[dict]) -> str:
    """Return the reply, which depends only on the messages."""
    words = messages[0]["content"]
    if "First caption: " in words:
        first, second = re.findall(r"caption: (.*)", words)
        if "boat" in first:
            return "Hard to say."
        is_false = ("purple" in second) != ("purple" in first) or "horse" in first
        return "Different." if is_false else "same"
    caption, is_first = caption_of(messages), len(messages) == 1
    if "dog" in caption and is_first:
        return "I'm sorry, but as an AI I do not edit dogs."
    if "car" in caption:
        return TWICE
    if "false of every picture" in words:
        return negative(caption)
    opening = re.search(r'begins with "(.*?)"', words)
    if opening:
        return f'"{opening[1].capitalize()} {lowered(caption)}"'
    return f"{SEEN}{lowered(caption)}"
