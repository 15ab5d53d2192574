//! What the bench found, as `--json` prints it and as the table is made from.

use serde::Serialize;

use crate::common::header::Header;
use crate::converter::ConverterReport;
use crate::offset::OffsetReport;
use crate::program::ProgramReport;
use crate::rings::RingsReport;
use crate::spread::Spread;

/// Version of the schema.
pub const VERSION: u32 = 1;

/// Everything.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Which bench, how and where; of schema [`VERSION`].
    #[serde(flatten)]
    pub header: Header,
    /// Ratios between programs of the same rounds, the one with a target first.
    pub ratios: Vec<Ratio>,
    /// Cost of the XDP programs.
    pub program: Option<ProgramReport>,
    /// How closely TSC events are held against the TSC.
    pub offset: Option<OffsetReport>,
    /// Cost of the converter.
    pub converter: Option<ConverterReport>,
    /// Live frames by ring size.
    pub rings: Option<RingsReport>,
}

/// One cost over another, round by round.
#[derive(Debug, Serialize)]
pub struct Ratio {
    /// What over what, for which frames.
    pub name: String,
    /// The ratio of whole costs, harness included.
    pub ratio: Spread,
    /// The ratio of the costs less the harness.
    pub net: Spread,
    /// Most that the median of `ratio` may be.
    pub target: Option<f64>,
}

impl Report {
    /// The targets that were missed, with what was measured.
    pub fn missed(&self) -> Vec<String> {
        let ratios = self
            .ratios
            .iter()
            .map(|ratio| (ratio.name.clone(), ratio.ratio.median, ratio.target));
        let converter = self.converter.iter().flat_map(|report| &report.cells);
        let converter = converter.map(|cell| {
            (
                format!("converter, {}", cell.name()),
                cell.ns.min,
                cell.asserted_ns,
            )
        });
        let tsc = self.converter.iter().map(|report| {
            let name = "converter, 64 B, tsc less ktime".to_owned();
            (name, report.tsc_more_ns.median, Some(report.tsc_target_ns))
        });
        let offset = self.offset.iter().flat_map(|report| &report.cells);
        let offset = offset.flat_map(|cell| {
            let what = |leg| format!("offset of CPU {}, {leg}, ns", cell.cpu);
            [
                (what("own leg"), cell.cpu_ns.min, Some(cell.cpu_target_ns)),
                (what("whole"), cell.whole_ns.min, Some(cell.whole_target_ns)),
            ]
        });
        ratios
            .chain(converter)
            .chain(tsc)
            .chain(offset)
            .filter_map(|(name, figure, target)| {
                let target = target.filter(|target| figure > *target)?;
                Some(format!("{name}: {figure:.2}, at most {target:.2}"))
            })
            .collect()
    }
}
