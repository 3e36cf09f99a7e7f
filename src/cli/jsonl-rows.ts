// Reads animals from JSON Lines: one JSON object a line, as the body of a create.
import { parseJson } from '../contract/json.ts'
import { BODY_LIMIT, kibibytes } from '../contract/limits.ts'
import { parseNewPet } from '../contract/pets.ts'
import { Refused } from '../contract/errors.ts'
import type { Row } from './pet-file.ts'

const NEW_LINE = '\n'.charCodeAt(0)

export async function* readJsonLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Row[]> {
  let line = 1
  /** The start of a line that goes on in the next chunk; of an overlong one, only as much as shows that it is. */
  let rest = Buffer.alloc(0)
  for await (const chunk of chunks) {
    const rows: Row[] = []
    let from = 0
    for (let end = chunk.indexOf(NEW_LINE); end >= 0; end = chunk.indexOf(NEW_LINE, from)) {
      rows.push(...readLine(line, join(rest, chunk.subarray(from, end))))
      rest = Buffer.alloc(0)
      from = end + 1
      line += 1
    }
    rest = join(rest, chunk.subarray(from))
    yield rows
  }
  yield readLine(line, rest)
}

function join(start: Buffer, more: Buffer): Buffer<ArrayBuffer> {
  return Buffer.concat([start, more.subarray(0, BODY_LIMIT + 1)]).subarray(0, BODY_LIMIT + 1)
}

/** Returns no row for a blank line. */
function readLine(line: number, bytes: Buffer): Row[] {
  if (bytes.length > BODY_LIMIT) return [{ line, problem: `The line is larger than ${kibibytes(BODY_LIMIT)}.` }]
  if (bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)) return []
  const json = parseJson(bytes, 'line')
  const pet = json instanceof Refused ? json : parseNewPet(json.value, 'line')
  return [pet instanceof Refused ? { line, problem: pet.message } : { line, pet }]
}
