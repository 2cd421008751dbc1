//! Recognises most names of no interest by their first three bytes, so that they need no comparison.

use super::elements::{Element, KNOWN};

/// Elements of which the end tag is of interest, too: they are counted.
const COUNTED: [&str; 3] = ["svg", "math", "template"];

/// Entries of the table. One in 40 is taken, so few other names share one.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 11;

/// Found by trial: no usual name shares its slot with one of interest.
const FACTOR: u32 = 0x2BFC_7FFD;

/// For each slot, true if a tag of interest has it.
static TABLE: [bool; SLOTS] = {
    let mut table = [false; SLOTS];
    let mut known: &[Element] = &KNOWN;
    while let [element, rest @ ..] = known {
        table = with(table, element.name, false);
        known = rest;
    }
    let mut counted: &[&str] = &COUNTED;
    while let [name, rest @ ..] = counted {
        table = with(table, name, true);
        counted = rest;
    }
    table
};

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn with(mut table: [bool; SLOTS], name: &str, closing: bool) -> [bool; SLOTS] {
    /// The bytes that end a name.
    const ENDS: [u8; 7] = *b" \t\n\x0C\r/>";
    let name = name.as_bytes();
    if let [first, second] = name {
        let mut end = 0;
        while end < ENDS.len() {
            table[slot([*first, *second, ENDS[end]], closing)] = true;
            end += 1;
        }
    } else {
        table[slot([name[0], name[1], name[2]], closing)] = true;
    }
    table
}

/// The slot of a tag: the same in any case.
#[inline]
const fn slot([first, second, third]: [u8; 3], closing: bool) -> usize {
    let key = u32::from_le_bytes([first, second, third, closing as u8]) | 0x0020_2020;
    (key.wrapping_mul(FACTOR) >> (u32::BITS - SLOT_BITS)) as usize
}

/// Returns true for every tag of interest, and for a few others. `start` has the first three bytes of the name, or a
/// shorter name and the bytes behind it. End tags matter only if their elements are counted.
#[inline]
pub(super) fn may_matter(start: [u8; 3], closing: bool) -> bool {
    TABLE.get(slot(start, closing)).is_none_or(|&taken| taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matters(tag: &str, closing: bool) -> bool {
        may_matter(*tag.as_bytes().first_chunk().unwrap(), closing)
    }

    #[test]
    fn no_element_of_interest_is_overlooked() {
        for name in KNOWN.iter().map(|known| known.name) {
            for behind in [">", " ", "/", "\n", "\t", "\r", "\x0C"] {
                let tag = format!("{name}{behind}");
                assert!(matters(&tag, false) && matters(&tag.to_ascii_uppercase(), false), "{name}");
            }
        }
    }

    #[test]
    fn no_end_tag_that_is_counted_is_overlooked() {
        for name in ["svg>", "math>", "template>", "SVG>", "MATH>", "TEMPLATE>"] {
            assert!(matters(name, true), "{name}");
        }
    }

    #[test]
    fn the_most_usual_elements_are_of_none() {
        for name in
            ["a", "p", "div", "span", "ul", "ol", "li", "h1", "h2", "br", "b", "i", "em", "form", "label", "strong"]
        {
            for behind in [" class", " id", " href", "><a", ">\n ", "/>"] {
                for closing in [false, true] {
                    assert!(!matters(&format!("{name}{behind}"), closing), "{name}{behind}");
                }
            }
        }
        for name in ["td>", "img", "script", "title"] {
            assert!(!matters(name, true), "{name}");
        }
    }
}
