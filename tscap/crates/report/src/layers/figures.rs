//! The picture of residences.

use tscap_document::{Figure, Shares};
use tscap_flows::layers::schema::FlowResidences;

/// The share of packets that were no longer between two layers.
pub(super) fn residences(all: &FlowResidences) -> Option<Figure> {
    let of = all.residences.iter();
    let of = of.map(|it| (format!("{} → {}", it.from, it.to), &it.histogram[..]));
    Shares {
        id: "residence",
        title: "Residence between layers",
        description: "The share of all packets that were no longer between two layers.",
        values: "residence",
        of: of.collect(),
    }
    .figure()
}
