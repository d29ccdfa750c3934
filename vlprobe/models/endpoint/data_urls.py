"""Pictures as servers take them: inside of a request, as data URLs."""

import base64
import io

from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.scoring import pictures
from vlprobe.types import Picture

PIXELS_PER_TOKEN = 750  # roughly, of several services


def how(side: int) -> str:
    """What is done to a picture, in words that a digest covers."""
    return f"upright RGB, longer side at most {side} (Lanczos), PNG"


def of_image(image: Image.Image, side: int) -> str:
    """An RGB picture as a data URL, made ready as `how` says."""
    longest = max(image.size)
    if longest > side:
        width, height = (max(1, round(length * side / longest)) for length in image.size)
        image = image.resize((width, height), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def of_picture(picture: Picture, side: int) -> str:
    """A picture, edited as it says, as a data URL. Raises InvalidInput where it cannot be read."""
    return of_image(pictures.open_picture(picture), side)


def tokens(side: int) -> int:
    """Tokens that a picture takes, roughly and at most."""
    return -(-side * side // PIXELS_PER_TOKEN)


def refuse_absent(picture: Picture, model: str) -> None:
    """Raises InvalidInput where a picture is not here to be sent."""
    if picture.absent:
        raise InvalidInput(
            f"Picture '{picture.absent}' is not here, and '{model}' is sent pictures. Write +available in place of "
            "+unpictured to ask about the others."
        )
