//! Lists of sizes and of gaps as people write them.

/// Sizes of a sweep, or one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Steps(pub Vec<u32>);

/// Numbers: `64`, `64,512,1500`, `64-1500/100` or `64..1500/100` (from 64 in steps
/// of 100 up to 1500).
pub(crate) fn steps(text: &str) -> Result<Steps, String> {
    const FORM: &str = "sizes are numbers and ranges with a step, such as 64,512 or 64-1500/100";
    let number = |digits: &str| digits.parse::<u16>().map_err(|_| FORM.to_owned());
    let mut steps = Vec::new();
    for part in text.split(',') {
        let Some((range, step)) = part.split_once('/') else {
            steps.push(number(part)?.into());
            continue;
        };
        let ends = range.split_once("..").or_else(|| range.split_once('-'));
        let (first, last) = ends.ok_or(FORM)?;
        let (first, last, step) = (number(first)?, number(last)?, number(step)?);
        if first > last || step == 0 {
            return Err(format!("the range {part} goes nowhere"));
        }
        steps.extend((first..=last).step_by(step.into()).map(u32::from));
    }
    Ok(Steps(steps))
}

/// Between two frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    ByteTimes(u64),
    Ns(u64),
}

/// Gaps of a sweep, or one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gaps(pub Vec<Gap>);

/// A gap in byte times: `12`.
pub(crate) fn byte_times(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "a gap is a number of byte times, such as 12".into())
}

/// Gaps: byte times (`12`), durations with a unit (`10us`), or a list of them.
pub(crate) fn gaps(text: &str) -> Result<Gaps, String> {
    let gap = |text: &str| {
        if let Ok(byte_times) = text.parse() {
            return Ok(Gap::ByteTimes(byte_times));
        }
        let gap = humantime::parse_duration(text).map_err(|_| {
            "a gap is a number of byte times, or a duration such as 10us".to_owned()
        })?;
        let ns = u64::try_from(gap.as_nanos());
        ns.map(Gap::Ns)
            .map_err(|_| "that gap is too long".to_owned())
    };
    text.split(',').map(gap).collect::<Result<_, _>>().map(Gaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps() {
        let good = |text| steps(text).map(|steps| steps.0);
        assert_eq!(good("64"), Ok(vec![64]));
        assert_eq!(good("64,1500,128"), Ok(vec![64, 1500, 128]));
        assert_eq!(good("72-100/8,1500"), Ok(vec![72, 80, 88, 96, 1500]));
        assert_eq!(good("64,256..384/64"), Ok(vec![64, 256, 320, 384]));
        for bad in [
            "",
            "64-1500",
            "64-1500/0",
            "9-8/1",
            "1e3",
            "70000",
            "64,",
            "a/1",
        ] {
            assert!(steps(bad).is_err(), "{bad}");
        }
        assert_eq!(
            gaps("12,10us,1ms").map(|gaps| gaps.0),
            Ok(vec![
                Gap::ByteTimes(12),
                Gap::Ns(10_000),
                Gap::Ns(1_000_000)
            ])
        );
        for bad in ["", "-1", "1.5", "soon", "1us,,2us"] {
            assert!(gaps(bad).is_err(), "{bad}");
        }
    }
}
