// Reads a form with a file (multipart/form-data) as a stream: the fields that come before the file, then the file.
import type { IncomingMessage } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { Busboy } from '@fastify/busboy'
import { UPLOAD_LIMIT } from '../../contract/limits.ts'
import { askForBody, takeTime } from '../../http/body.ts'
import { FileRefused } from '../../pet-files/pet-file.ts'
import type { SentForm } from './visit.ts'

/** The least size of each part of a file but the last. */
const PART_BYTES = 64 * 1024

/** How much the parser gets in one turn of the event loop: each part takes it 20 µs, and 5 bytes can be one. */
const PARSED_BYTES = 2 * 1024

/** The bytes of the fields and of what surrounds them. */
const OVERHEAD = 16 * 1024
/** The part that is a file although it has no name of one: the rows that somebody has pasted. */
export const PASTED = { field: 'rows', name: 'Pasted rows' }

const LIMITS = { files: 1, fieldSize: 1024, fields: 10, parts: 20, headerPairs: 20, headerSize: 4096 }

const TOO_LARGE = new FileRefused(`The file is larger than ${UPLOAD_LIMIT / 1024 / 1024} MB.`)
const NOT_WHOLE = new FileRefused('The file did not arrive completely, or not alone. Send it again.')

/**
 * Resolves when the file begins, or at the end of a form without one. Never waits for the parser, which a malformed form can make wait
 * forever, and never ends it: of an unfinished form it would emit errors that have no listener, and the process would end.
 */
export async function readFileForm(request: IncomingMessage): Promise<SentForm> {
  const read: SentForm = { form: new URLSearchParams() }
  const pieces: Buffer[] = []
  let size = 0
  let [isWhole, isSound] = [false, true]
  const refuse = () => (isSound = false)
  const isPartAFile = (field: string | undefined, type: string | undefined, name: string | undefined) =>
    field === PASTED.field || name !== undefined || type === 'application/octet-stream'
  const headers = { 'content-type': request.headers['content-type']! }
  const parser = new Busboy({ headers, limits: LIMITS, isPartAFile })
  parser.on('field', (name, value) => read.file ?? read.form.append(name, value))
  parser.on('file', (field, file, name: string | undefined) => {
    read.file = { name: field === PASTED.field ? PASTED.name : (name ?? ''), parts: parts() }
    file.on('error', refuse).on('data', (piece: Buffer) => {
      pieces.push(piece)
      size += piece.length
    })
    // A boundary has followed it.
    file.on('end', () => (isWhole = true))
  })
  for (const event of ['error', 'filesLimit', 'fieldsLimit', 'partsLimit'] as const) parser.on(event, refuse)

  /** Yields after each packet. */
  async function* parse(): AsyncGenerator<undefined> {
    let received = 0
    try {
      for await (const packet of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        for (let at = 0; at < packet.length; at += PARSED_BYTES) {
          parser.write(packet.subarray(at, at + PARSED_BYTES))
          await setImmediate()
          if (!isSound) return
        }
        received += packet.length
        if (received > UPLOAD_LIMIT + OVERHEAD) throw TOO_LARGE
        if (received > OVERHEAD && read.file === undefined) return
        yield
      }
    } catch (error) {
      // Otherwise the client has left, and the form is not whole.
      if (error === TOO_LARGE) throw error
    }
  }

  const packets = parse()
  async function* parts(): AsyncGenerator<Buffer> {
    for await (const _packet of packets) {
      if (size < PART_BYTES) continue
      size = 0
      yield Buffer.concat(pieces.splice(0))
    }
    if (!isWhole || !isSound) throw NOT_WHOLE
    yield Buffer.concat(pieces)
  }

  askForBody(request)
  takeTime(request)
  while (read.file === undefined && (await packets.next()).done !== true);
  return read
}
