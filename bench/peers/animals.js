// The animals of the peers made by hand: node:sqlite as its documentation shows it, with the same durability as ours.
import { DatabaseSync } from 'node:sqlite'

const [path, key] = process.argv.slice(2)
export const KEY = key

const db = new DatabaseSync(path)
db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
db.exec('CREATE TABLE pets (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, categoryId INTEGER NOT NULL, status TEXT NOT NULL)')
db.exec('CREATE INDEX pets_by_status ON pets (status)')

const insert = db.prepare('INSERT INTO pets (name, categoryId, status) VALUES (?, ?, ?) RETURNING *')
const page = db.prepare('SELECT * FROM pets WHERE id < ? ORDER BY id DESC LIMIT ?')
const pageOfStatus = db.prepare('SELECT * FROM pets WHERE status = ? AND id < ? ORDER BY id DESC LIMIT ?')
const one = db.prepare('SELECT * FROM pets WHERE id = ?')

db.exec('BEGIN')
for (let count = 0; count < 1000; count += 1) insert.get('Bella the Brave', 3, 'available')
db.exec('COMMIT')

export function list({ limit = '20', status, cursor }) {
  const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : Buffer.from(cursor, 'base64url').readBigInt64BE(1)
  return status === undefined ? page.all(before, Number(limit)) : pageOfStatus.all(status, before, Number(limit))
}

export function get(id) {
  return one.get(id)
}

export function create({ name, categoryId, status = 'available' }) {
  return insert.get(name, categoryId, status)
}

export function listening(server) {
  process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`)
}
