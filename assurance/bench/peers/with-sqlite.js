// The runtime's built-in SQLite, with the same durability as this service.
const { Database } = process.versions.bun
  ? await import('bun:sqlite')
  : { Database: (await import('node:sqlite')).DatabaseSync }

export function open(path) {
  const db = new Database(path)
  db.exec('PRAGMA synchronous = FULL')
  const insert = db.prepare('INSERT INTO pets (name, categoryId, status) VALUES (?, ?, ?) RETURNING *')
  const page = db.prepare('SELECT * FROM pets WHERE id < ? ORDER BY id DESC LIMIT ?')
  const pageOfStatus = db.prepare('SELECT * FROM pets WHERE status = ? AND id < ? ORDER BY id DESC LIMIT ?')
  const one = db.prepare('SELECT * FROM pets WHERE id = ?')
  return {
    insert: (...values) => insert.get(...values),
    page: (...values) => page.all(...values),
    pageOfStatus: (...values) => pageOfStatus.all(...values),
    one: (id) => one.get(id),
  }
}
