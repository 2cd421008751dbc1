//! Response policy zones as lists of names. Earlier releases read them. A file that names one still starts without it, and
//! a warning says how to convert it.

use std::path::Path;

/// Writes the names of the zone file behind it into `FILE.txt`, and its exceptions into `FILE.except.txt`.
const CONVERT: &str = r#"awk '{$0=tolower($0)} $1=="$origin"{o=$2=="."?$2:"."$2} /^[^ \t;$]/{n=$1=="@"?o:"."$1($1~/\.$/?"":o)} /[ \t]soa[ \t]/{z=length(n)} /[ \t](a|aaaa|cname)[ \t]/&&!/[ \t]cname[ \t]+(rpz-[dnt]|\*?\.([ \t;]|$))/{m=substr(n,2,length(n)-z-1); if(m!=""&&m!~/\.rpz-/) print (m~/^\*/?"":"=")m >(FILENAME (/rpz-passthru/?".except":"") ".txt")}' o=."#;

/// The target of a record that excepts a name from the zone's policy.
const EXCEPTS: &str = "rpz-passthru.";

/// Returns true if a list that begins with this entry is a zone file: a directive, or the record of its authority.
pub(super) fn begins_with(entry: &str) -> bool {
    entry.starts_with('$') || entry.split_ascii_whitespace().skip(1).any(|word| word.eq_ignore_ascii_case("SOA"))
}

/// Returns true if the zone excepts names.
pub(super) fn has_exceptions(text: &str) -> bool {
    text.to_ascii_lowercase().contains(EXCEPTS)
}

/// Returns the command that converts the file.
pub(super) fn conversion(file: &Path) -> String {
    format!("{CONVERT} '{}'", file.display())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    /// Zone files as people write them, and as BIND writes them in its two styles. Each says the same.
    const ZONES: [&str; 3] = [
        "; policy\n$TTL 60\n@ IN SOA localhost. nobody.invalid. (\n 1 2 3 4 5 )\n NS localhost.\n\
         a.example A 192.0.2.1\n*.a.example A 192.0.2.1\n\tAAAA 2001:db8::1\nb.example CNAME pep.example.net.\n\
         c.example CNAME rpz-passthru.\n*.D.example CNAME RPZ-PASSTHRU. ; why\ne.example CNAME .\nf.example CNAME *.\n\
         g.example CNAME rpz-drop.\nh.example TXT \"x\"\n24.0.2.0.192.rpz-ip A 192.0.2.1\n",
        "$ORIGIN .\n$TTL 60\t; 1 minute\nrpz.example.net\t\tIN SOA\tlocalhost. nobody.invalid. (\n\t1 ; serial\n\t2 3 4 5 )\n\
         \t\tNS\tlocalhost.\n$ORIGIN example.rpz.example.net.\na\t\tA\t192.0.2.1\n*.a\t\tA\t192.0.2.1\n\
         b\t\tCNAME\tpep.example.net.\nc\t\tCNAME\trpz-passthru.\n*.d\t\tCNAME\trpz-passthru.\ne\t\tCNAME\t.\n",
        "rpz.example.net.\t60\tIN SOA\tlocalhost. nobody.invalid. 1 2 3 4 5\nrpz.example.net. 60 IN NS localhost.\n\
         a.example.rpz.example.net.\t60\tIN A\t192.0.2.1\n*.a.example.rpz.example.net.\t60\tIN A\t192.0.2.1\n\
         b.example.rpz.example.net. 60 IN CNAME pep.example.net.\nc.example.rpz.example.net. 60 IN CNAME rpz-passthru.\n\
         *.d.example.rpz.example.net. 60 IN CNAME rpz-passthru.\ne.example.rpz.example.net. 60 IN CNAME .\n",
    ];

    #[test]
    fn the_command_writes_the_names_and_the_exceptions_of_a_zone() {
        for zone in ZONES {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("policy.zone");
            fs::write(&file, zone).unwrap();
            let status = Command::new("sh").arg("-c").arg(conversion(&file)).status().unwrap();
            assert!(status.success());
            let written = |name: &str| -> Vec<String> {
                let text = fs::read_to_string(folder.path().join(name)).unwrap();
                let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
                names.dedup();
                names
            };
            assert_eq!(written("policy.zone.txt"), ["=a.example", "*.a.example", "=b.example"], "{zone}");
            assert_eq!(written("policy.zone.except.txt"), ["=c.example", "*.d.example"], "{zone}");
        }
    }

    #[test]
    fn the_readme_of_the_dns_server_shows_the_same_command() {
        let readme = include_str!("../../../coredns-plugin/README.md");
        assert!(readme.contains(&conversion(Path::new("policy.zone"))), "{}", conversion(Path::new("policy.zone")));
    }

    #[test]
    fn a_zone_file_is_told_from_a_list_of_names() {
        for zone in ["$TTL 60", "$ORIGIN rpz.", "@ SOA localhost. nobody.invalid. 1 2 3 4 5", "rpz. 60 IN soa a. b. ("]
        {
            assert!(begins_with(zone), "{zone}");
        }
        for other in ["example.org", "soa.example", "soa", "a.example b.example", "192.0.2.1 a.example"] {
            assert!(!begins_with(other), "{other}");
        }
    }
}
