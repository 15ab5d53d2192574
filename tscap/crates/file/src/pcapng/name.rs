//! Names that promise another format than what is written.

use std::path::Path;

/// What to say of a file that is named as one of pcap; `None` of any other name.
pub fn pcap_name(path: &Path) -> Option<String> {
    let ending = path.extension()?.to_str()?;
    let is_pcap = ["pcap", "cap"].contains(&ending.to_ascii_lowercase().as_str());
    is_pcap.then(|| {
        format!(
            "tscap writes pcapng: {} will not be pcap (editcap -F nsecpcap IN OUT makes a pcap of \
             a pcapng)",
            path.display()
        )
    })
}

#[test]
fn names_of_pcap_are_known() {
    for name in ["a.pcap", "a/b.CAP", "x.pcapng.pcap"] {
        let said = pcap_name(Path::new(name)).unwrap();
        assert!(said.contains(name) && said.contains("editcap"), "{said}");
    }
    for name in ["a.pcapng", "pcap", ".pcap", "a.pcap.gz", "-"] {
        assert_eq!(pcap_name(Path::new(name)), None, "{name}");
    }
}
