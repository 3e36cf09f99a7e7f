// The position in a list: opaque to clients, here the id of the last animal of the page before.

const VERSION = 1
const BYTES = 9

const scratch = Buffer.alloc(BYTES, VERSION)

export function encodeCursor(before: bigint): string {
  scratch.writeBigInt64BE(before, 1)
  return scratch.toString('base64url')
}

/** The id the page starts below; undefined for anything that `encodeCursor` did not make. */
export function decodeCursor(cursor: string): bigint | undefined {
  if (cursor.length !== (BYTES / 3) * 4) return undefined
  const bytes = Buffer.from(cursor, 'base64url')
  if (bytes.length !== BYTES || bytes.readUInt8(0) !== VERSION || bytes.toString('base64url') !== cursor)
    return undefined
  return bytes.readBigInt64BE(1)
}
