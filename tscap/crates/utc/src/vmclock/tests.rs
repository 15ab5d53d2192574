use super::*;

/// A counter of 2.5 GHz whose page is of 1,000 s after the epoch and the value 5,000.
const SHIFT: u8 = 31;
const REAL_S: u64 = 1_700_000_000;

/// Fields of the page, as the hypervisor writes them.
pub(crate) fn page() -> Vec<u8> {
    let mut octets = vec![0; 4096];
    let period = (1_u128 << (64 + SHIFT)) / 2_500_000_000;
    let mut put = |at: usize, field: &[u8]| octets[at..at + field.len()].copy_from_slice(field);
    put(0, b"VCLK");
    put(4, &4096_u32.to_le_bytes());
    put(8, &1_u16.to_le_bytes());
    put(10, &[tscap_arch::VMCLOCK_COUNTER, 0]);
    put(12, &8_u32.to_le_bytes());
    put(16, &0xabcd_u64.to_le_bytes());
    let flags = TAI_OFFSET_VALID | PERIOD_MAXERROR_VALID | TIME_MAXERROR_VALID;
    put(24, &flags.to_le_bytes());
    put(34, &[SYNCHRONIZED]);
    put(36, &37_u16.to_le_bytes());
    put(39, &[SHIFT]);
    put(40, &5_000_u64.to_le_bytes());
    put(48, &u64::try_from(period).unwrap().to_le_bytes());
    // 1 ppm.
    put(
        64,
        &u64::try_from(period / 1_000_000).unwrap().to_le_bytes(),
    );
    put(72, &REAL_S.to_le_bytes());
    put(80, &(1_u64 << 63).to_le_bytes());
    put(96, &800_u64.to_le_bytes());
    octets
}

/// The host's clock read so much after the page's time, 40 ns of the counter around it.
fn reading(octets: &[u8], seconds: u64, host_behind_ns: u64) -> Result<Reading, String> {
    let tsc = 5_000 + seconds * 2_500_000_000;
    let real = REAL_S * 1_000_000_000 + 500_000_000 + seconds * 1_000_000_000 - host_behind_ns;
    Ok(Reading {
        page: Page::parse(octets)?,
        tsc: [TscCycles(tsc - 50), TscCycles(tsc + 50)],
        real: RealNs(real),
        as_of: MonoNs(10),
    })
}

#[test]
fn utc_is_what_the_page_makes_of_the_counter() {
    let said = reading(&page(), 100, 3_000).unwrap();
    let bound = said.bound(0);
    let UtcInterval([earliest, latest]) = bound.utc_less_host_ns.unwrap();
    // ±20 ns of reading, 0.8 µs, and 1 ppm of 100 s.
    let error = 20 + 800 + 100_000;
    assert!(
        (3_000 - error - 8..=3_000 - error).contains(&earliest),
        "{earliest}"
    );
    assert!(
        (3_000 + error..=3_000 + error + 8).contains(&latest),
        "{latest}"
    );
    // The host's clock may drift since.
    let later = said.bound(50_000);
    assert_eq!(later.bound_ns.unwrap() - bound.bound_ns.unwrap(), 50_000);
    // A counter value just before that of the page.
    let mut before = reading(&page(), 0, 0).unwrap();
    before.tsc = [TscCycles(4_950), TscCycles(4_990)];
    let UtcInterval(ends) = before.bound(0).utc_less_host_ns.unwrap();
    assert!(ends[0] >= -20 - 800 - 8 && ends[1] <= 800 + 8, "{ends:?}");
}

#[test]
fn tai_is_counted_back_to_utc() {
    let mut octets = page();
    octets[11] = 1;
    octets[72..80].copy_from_slice(&(REAL_S + 37).to_le_bytes());
    let bound = reading(&octets, 0, 0).unwrap().bound(0);
    assert!(bound.bound_ns.unwrap() < 900, "{bound:?}");
}

#[test]
fn what_does_not_bound_utc_is_named() {
    type Change = fn(&mut Vec<u8>);
    let unbounded: [(Change, &str); 8] = [
        (|it| it[11] = 2, "time of day"),
        (
            |it| {
                it[11] = 1;
                it[24] &= 0xfe;
            },
            "TAI",
        ),
        (|it| it[10] = 0xff, "another counter"),
        (|it| it[34] = 4, "not synchronised"),
        (|it| it[24] &= !0x40, "does not bound"),
        (|it| it[24] &= !0x10, "does not bound"),
        (|it| it[38] = 3, "leap second"),
        (|it| it[39] = 200, "impossible"),
    ];
    for (change, why) in unbounded {
        let mut octets = page();
        change(&mut octets);
        let said = reading(&octets, 1, 0).unwrap().bound(0);
        let unknown = said.unknown.clone().unwrap_or_default();
        assert!(
            said.bound_ns.is_none() && unknown.contains(why),
            "{why}: {said:?}"
        );
        // The marker is known all the same.
        assert!(matches!(
            said.parts,
            Parts::VmClock {
                disruption_marker: 0xabcd,
                ..
            }
        ));
    }
    let unread: [(Change, &str); 3] = [
        (|it| it[0] = 0, "no page"),
        (|it| it[8] = 2, "version 2"),
        (|it| it.truncate(90), "cut"),
    ];
    for (change, why) in unread {
        let mut octets = page();
        change(&mut octets);
        assert!(reading(&octets, 1, 0).unwrap_err().contains(why), "{why}");
    }
}

#[test]
fn a_page_that_is_being_changed_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vmclock0");
    assert!(open(&path).is_none());
    std::fs::write(&path, page()).unwrap();
    let device = open(&path).unwrap().unwrap();
    let taken = Reading::take(&device).unwrap();
    assert_eq!(taken.page, Page::parse(&page()).unwrap());
    assert!(taken.tsc[0] <= taken.tsc[1]);
    let mut octets = page();
    octets[12] = 9;
    std::fs::write(&path, octets).unwrap();
    assert!(
        Reading::take(&device)
            .unwrap_err()
            .contains("being changed")
    );
}

proptest::proptest! {
    #[test]
    fn nothing_in_a_page_is_harmful(octets in proptest::collection::vec(proptest::num::u8::ANY, 104), tsc: u64) {
        let mut octets = octets;
        octets[..12].copy_from_slice(&page()[..12]);
        octets[24..32].copy_from_slice(&page()[24..32]);
        octets[34] = SYNCHRONIZED;
        let reading = Reading {
            page: Page::parse(&octets).unwrap(),
            tsc: [TscCycles(tsc), TscCycles(tsc.wrapping_add(100))],
            real: RealNs(REAL_S * 1_000_000_000),
            as_of: MonoNs(0),
        };
        let _ = reading.bound(u64::MAX).sentence();
    }
}
