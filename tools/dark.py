"""The dark variants of the site's figures.

What is dark becomes light and white becomes the page, by the lightness of each colour; hues stay.
"""

from __future__ import annotations

import colorsys
import re

#: Hue, lightness and saturation of the dark page, those of Material's slate; greys take its tint.
HUE, PAGE, TINT = 225 / 360, 0.14, 0.15
COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b|#[0-9a-fA-F]{3}\b")


def dark(svg: str) -> str:
    """Return an SVG for a dark page; texts and paths without a colour are light."""
    svg = COLOUR.sub(lambda match: turned(match[0]), svg)
    return svg.replace("<svg ", f'<svg fill="{turned("#000000")}" ', 1)


def turned(colour: str) -> str:
    """Return a colour as it should be on a dark page."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    hue, light, saturation = colorsys.rgb_to_hls(
        *(int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4))
    )
    if saturation == 0:
        hue, saturation = HUE, TINT
    if light < 0.5 or light > 0.85:  # colours in between can be seen on both
        light = PAGE + (0.95 - PAGE) * (1 - light)
    parts = colorsys.hls_to_rgb(hue, light, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)
