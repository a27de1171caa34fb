//! Proofs of the launcher's secret: HMAC-SHA256 over a nonce of the other side and the message.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Bytes of a nonce.
pub(super) const NONCE: usize = 32;
/// Bytes of a proof.
pub(super) const PROOF: usize = 32;

/// The secret that the ranks of a world share; empty if the launcher has none.
#[derive(Clone)]
pub(super) struct Secret(Vec<u8>);

impl Secret {
    pub(super) fn new(text: &str) -> Secret {
        Secret(text.as_bytes().to_vec())
    }

    /// Proves the secret for a message of a role, such as `rank`, so that no proof serves another role.
    pub(super) fn prove(&self, role: &str, parts: &[&[u8]]) -> [u8; PROOF] {
        self.mac(role, parts).finalize().into_bytes().into()
    }

    /// Returns whether a proof is that of the message, in a time that does not depend on it.
    pub(super) fn is_proven(&self, role: &str, parts: &[&[u8]], proof: &[u8]) -> bool {
        self.mac(role, parts).verify_slice(proof).is_ok()
    }

    fn mac(&self, role: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
        // HMAC takes keys of any length, so the error does not occur; a key of zeros would prove nothing.
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|_| Hmac::new(&Default::default()));
        for part in [role.as_bytes()].into_iter().chain(parts.iter().copied()) {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }
}

/// Returns random bytes of the system.
pub(super) fn random<const COUNT: usize>() -> std::io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_its_secret_role_and_parts_alone() {
        let secret = Secret::new("one");
        let proof = secret.prove("rank", &[b"ab", b"c"]);
        assert!(secret.is_proven("rank", &[b"ab", b"c"], &proof));
        assert!(!secret.is_proven("rank", &[b"a", b"bc"], &proof));
        assert!(!secret.is_proven("peer", &[b"ab", b"c"], &proof));
        assert!(!Secret::new("two").is_proven("rank", &[b"ab", b"c"], &proof));
        assert!(!Secret::new("").is_proven("rank", &[b"ab", b"c"], &proof));
        assert!(!secret.is_proven("rank", &[b"ab", b"c"], &proof[..31]));
    }

    #[test]
    fn proofs_are_hmac_sha256() {
        // hmac.new(b"key", struct.pack("<Q", 4) + b"role", hashlib.sha256) of Python.
        let proof = Secret::new("key").prove("role", &[]);
        let hex: String = proof.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "bc23903c7aab4de2c24f13f14cdcd27adda33b6dfddb9be987838777570c6092");
    }
}
