// What the JavaScript peers share: the key, the errors, and the animals, kept as the documentation of a driver shows.
const [address, key, driver] = process.argv.slice(2)
export const KEY = key

export const UNAUTHORIZED = { code: 'unauthorized', message: 'API key missing or invalid', status: 401 }
export const NOT_FOUND = { code: 'not_found', message: 'No such animal', status: 404 }

const { open } = await import(`./with-${driver}.js`)
const { page, pageOfStatus, one, insert } = await open(address)

/** Returns the animals, or a promise of them, as the driver does. So do the other functions. */
export function list({ limit = '20', status, cursor }) {
  const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : positionOf(cursor)
  return status === undefined ? page(before, Number(limit)) : pageOfStatus(status, before, Number(limit))
}

function positionOf(cursor) {
  return Number(Buffer.from(cursor, 'base64url').readBigInt64BE(1))
}

/** Returns undefined (with bun:sqlite null) if there is no such animal. */
export function get(id) {
  return one(id)
}

export function create({ name, categoryId, status = 'available' }) {
  return insert(name, categoryId, status)
}

export function listening(port) {
  process.stdout.write(`${JSON.stringify({ port })}\n`)
}
