// The store of the JavaScript peers: the runtime's built-in SQLite, used as its documentation shows, with the same durability as
// this service.
const { Database } = process.versions.bun
  ? await import('bun:sqlite')
  : { Database: (await import('node:sqlite')).DatabaseSync }

const [path, key] = process.argv.slice(2)
export const KEY = key

export const UNAUTHORIZED = { code: 'unauthorized', message: 'API key missing or invalid', status: 401 }
export const NOT_FOUND = { code: 'not_found', message: 'No such animal', status: 404 }

const db = new Database(path)
db.exec('PRAGMA synchronous = FULL')

const insert = db.prepare('INSERT INTO pets (name, categoryId, status) VALUES (?, ?, ?) RETURNING *')
const page = db.prepare('SELECT * FROM pets WHERE id < ? ORDER BY id DESC LIMIT ?')
const pageOfStatus = db.prepare('SELECT * FROM pets WHERE status = ? AND id < ? ORDER BY id DESC LIMIT ?')
const one = db.prepare('SELECT * FROM pets WHERE id = ?')

export function list({ limit = '20', status, cursor }) {
  const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : Buffer.from(cursor, 'base64url').readBigInt64BE(1)
  return status === undefined ? page.all(before, Number(limit)) : pageOfStatus.all(status, before, Number(limit))
}

/** Returns undefined (on Bun null) if there is no such animal. */
export function get(id) {
  return one.get(id)
}

export function create({ name, categoryId, status = 'available' }) {
  return insert.get(name, categoryId, status)
}

export function listening(port) {
  process.stdout.write(`${JSON.stringify({ port })}\n`)
}
