//! What both clients need.

use std::env;

/// A failure of whatever kind: it ends the test.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Where the server is.
pub fn url() -> String {
    env::var("KILN_URL").expect("the environment says where the server is")
}

/// Has the server end in good order, and begin anew.
pub async fn restart() -> Result<()> {
    let command = env::var("KILN_RESTART")?;
    let status = tokio::process::Command::new("sh")
        .args(["-c", &command])
        .status()
        .await?;
    assert!(status.success(), "the server begins anew");
    Ok(())
}

/// A piece of COPY's data.
pub fn bytes(text: impl Into<String>) -> bytes::Bytes {
    bytes::Bytes::from(text.into())
}
