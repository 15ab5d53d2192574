//! The section header of captures that were joined.

use std::io::Read;

use super::super::block::{SECTION_OPTIONS, word};
use super::super::custom::PartOption;
use super::super::options::{
    COMMENT, CUSTOM_TEXT, json_of_ours, options_of, to_copy, with_options, word as word_of,
};
use super::input::Input;
use tscap_common::block::PEN;

/// Where a section header says how long the section is, bytes.
const SECTION_LENGTH: usize = 16;
/// Longest text of a comment, characters: an option holds 64 KiB.
const COMMENT_LENGTH: usize = 1000;

/// What all files say; what they say apart is in a comment for each. `part` is what the copy
/// is.
pub(super) fn header<R: Read>(inputs: &[Input<R>], part: Option<&PartOption>) -> Vec<u8> {
    let (first, endianness) = (&inputs[0].header, inputs[0].endianness);
    let described = |input: &Input<R>| {
        let less = to_copy(&input.header, endianness, true);
        let header = less.as_ref().unwrap_or(&input.header);
        let mut options = options_of(header, SECTION_OPTIONS, endianness);
        options.retain(|(code, value)| json_of_ours(*code, value, endianness).is_none());
        options
    };
    let mut options = described(&inputs[0]);
    if inputs.iter().any(|input| described(input) != options) {
        options.retain(|option| inputs.iter().all(|it| described(it).contains(option)));
        options.extend(inputs.iter().map(|input| {
            let texts = described(input).into_iter();
            let texts = texts.map(|(_, value)| String::from_utf8_lossy(&value).into_owned());
            let said = texts.collect::<Vec<_>>().join("; ");
            let comment = format!("{}: {said}", input.report.file);
            let comment: String = comment.chars().take(COMMENT_LENGTH).collect();
            (COMMENT, comment.into_bytes())
        }));
    }
    if let Some(part) = part {
        let json = serde_json::to_vec(part).expect("plain structs always serialise");
        let value = [&word_of(PEN, endianness)[..], &json].concat();
        options.push((CUSTOM_TEXT, value));
    }
    let mut start = first[..SECTION_OPTIONS.min(first.len())].to_vec();
    start[SECTION_LENGTH..].fill(0xff);
    debug_assert!(word(&start, 8, endianness) == Some(0x1a2b_3c4d));
    with_options(&start, SECTION_OPTIONS, &options, endianness)
        .expect("options that were in a header, and short ones")
}
