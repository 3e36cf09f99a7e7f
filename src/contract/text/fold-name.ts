// The folding by which email addresses and names of categories are compared: two that look the same must not be two.

/** Characters that show nothing or a blank: format characters, fillers, the empty Braille cell, a null notehead, hieroglyphic blanks. */
export const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}\u{2800}\u{13441}\u{13442}\u{16FE4}\u{1D159}]/gu

/**
 * Returns the same text for names that differ only in case, in white space, in invisible characters, or in how Unicode composes them.
 * A lower-case sigma is that of its place: an upper-case one does not tell which of the two was meant.
 */
export function foldName(name: string): string {
  const composed = name.replaceAll(INVISIBLE, '').normalize('NFKC').replaceAll(/[σς]/g, 'Σ')
  // Lower case has composed characters that upper case has not, such as that of J̌.
  return composed.toLowerCase().normalize('NFKC').replaceAll(/\s+/g, ' ').trim()
}
