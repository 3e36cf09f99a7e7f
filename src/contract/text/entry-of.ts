// Looks up a word in a table of words that this program knows.

/**
 * Returns the entry, undefined if the table has none. For keys from a database, a file or a request: a newer program may have
 * written one that this program does not know, and `table[key]` would find "constructor" in every table.
 */
export function entryOf<Entry>(table: Readonly<Record<string, Entry>>, key: string): Entry | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined
}
