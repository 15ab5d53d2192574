use super::*;

#[test]
fn the_identity_of_a_boot_has_thirty_two_digits() {
    let text = "01234567-89ab-cdef-0123-456789abcdef\n";
    let bytes = parsed(text).unwrap();
    assert_eq!(bytes[..5], [0x01, 0x23, 0x45, 0x67, 0x89]);
    assert_eq!(bytes[15], 0xef);
    for broken in ["", "0123", &text[1..], &text.replace('f', "g")] {
        assert_eq!(parsed(broken), None, "{broken}");
    }
    assert!(boot_id().is_ok());
}
