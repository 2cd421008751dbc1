//! Writes dictionary files. `header_codec::Dictionary` describes and reads them.

use header_codec::FieldList;

use crate::common::Common;
use crate::votes;

/// A value that does not fit into the file's format; the text names it.
#[derive(Debug, thiserror::Error)]
#[error("{0} does not fit into a dictionary file")]
pub struct DoesNotFit(String);

/// Returns the bytes of a dictionary file.
pub fn write(id: u8, common: &Common, slot_bits: u32, slots: &[[u8; 2]]) -> Result<Vec<u8>, DoesNotFit> {
    let mut file = b"LHHD".to_vec();
    file.push(id);
    file.push(u8::try_from(slot_bits).map_err(|_| DoesNotFit("the number of slots".to_owned()))?);
    let probabilities = votes::probabilities();
    short(&mut file, probabilities.len(), "the number of sums")?;
    for probability in probabilities {
        file.extend(probability.to_le_bytes());
    }
    short(&mut file, common.names.len(), "the number of names")?;
    for (name, _) in &common.names {
        byte(&mut file, name.len(), "the length of a name")?;
        file.extend(name);
    }
    for (_, values) in &common.names {
        byte(&mut file, values.len(), "the number of values of a name")?;
        for value in values {
            text(&mut file, value)?;
        }
    }
    for blocks in &common.blocks {
        byte(&mut file, blocks.len(), "the number of blocks")?;
        for block in blocks {
            write_block(&mut file, common, block)?;
        }
    }
    file.extend(slots.iter().flatten());
    Ok(file)
}

fn write_block(file: &mut Vec<u8>, common: &Common, block: &FieldList) -> Result<(), DoesNotFit> {
    byte(file, block.len(), "the number of fields of a block")?;
    for (name, value) in block {
        let at = common.names.iter().position(|(known, _)| known == name);
        let at = at.ok_or_else(|| DoesNotFit(format!("the name {:?}", String::from_utf8_lossy(name))))?;
        byte(file, at, "the number of a name")?;
        text(file, value)?;
    }
    Ok(())
}

fn text(file: &mut Vec<u8>, text: &[u8]) -> Result<(), DoesNotFit> {
    short(file, text.len(), "the length of a value")?;
    file.extend(text);
    Ok(())
}

fn byte(file: &mut Vec<u8>, number: usize, what: &str) -> Result<(), DoesNotFit> {
    file.push(u8::try_from(number).map_err(|_| DoesNotFit(format!("{what} ({number})")))?);
    Ok(())
}

fn short(file: &mut Vec<u8>, number: usize, what: &str) -> Result<(), DoesNotFit> {
    file.extend(u16::try_from(number).map_err(|_| DoesNotFit(format!("{what} ({number})")))?.to_le_bytes());
    Ok(())
}
