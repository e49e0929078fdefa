//! Settings files that are deleted at the end of their tests.

use std::fs;
use std::path::PathBuf;

use windrow_settings::{Flag, Settings, SettingsErrors, Sources};

/// A settings file that is deleted at the end of the test.
pub struct File(pub PathBuf);

impl File {
    pub fn new(name: &str, text: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("windrow-settings-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        let path = folder.join("windrow.toml");
        fs::write(&path, text).expect("a temporary file");
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if let Some(folder) = self.0.parent() {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

pub fn load(
    file: Option<&File>,
    env: &[(&str, &str)],
    flags: &[(&str, &str, &str)],
) -> Result<Settings, SettingsErrors> {
    Settings::load(Sources {
        config_path: file.map(|file| file.0.clone()),
        env: env.iter().map(|(name, value)| (name.to_string(), value.to_string())),
        flags: flags
            .iter()
            .map(|(path, name, value)| Flag {
                path: path.to_string(),
                name: name.to_string(),
                value: value.to_string(),
            })
            .collect(),
        default_backend: None,
    })
}

pub fn load_text(name: &str, text: &str) -> Result<Settings, SettingsErrors> {
    load(Some(&File::new(name, text)), &[], &[])
}

/// Returns the errors of a file, with the path of the file shortened to its name.
pub fn errors_of(name: &str, text: &str) -> Vec<String> {
    let file = File::new(name, text);
    let errors = load(Some(&file), &[], &[]).expect_err("refused settings");
    let shown = file.0.display().to_string();
    errors.to_string().lines().map(|line| line.replace(&shown, "windrow.toml")).collect()
}
