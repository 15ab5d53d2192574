//! What a reader must know of a file in which packets were matched.

use std::collections::BTreeSet;

use super::places::Places;
use tscap_base::text::numbers::counted;
use tscap_streams::Survey;

/// Of the places, and of the end of the file.
pub(super) fn warnings(survey: &Survey, places: &Places) -> Vec<String> {
    let both = [&places.entry, &places.exit];
    let indices: BTreeSet<_> = both.iter().flat_map(|place| &place.indices).collect();
    let mut warnings = Vec::new();
    for index in indices {
        let described = &survey.interfaces[*index];
        let mut place = both.iter().filter(|place| place.indices.contains(index));
        let name = place.next().map_or("", |place| place.name.as_str());
        if described.cut > 0 {
            warnings.push(format!(
                "{name}: {} of {} cut by the snaplen: those with the same bytes up to there \
                 can't be told apart",
                counted(described.cut, "frame"),
                described.frames
            ));
        }
        let taken_for = "packets that seem to be lost inside or to originate there";
        warnings.extend(described.without_times(name));
        warnings.extend(described.lost(name, taken_for));
    }
    warnings.extend(survey.end.warnings(survey.is_tscaps()));
    warnings
}
