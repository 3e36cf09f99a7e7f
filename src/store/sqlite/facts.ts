// Facts about a database itself, in SQLite.
import type { DatabaseSync } from 'node:sqlite'
import type { Facts } from '../facts.ts'
import type { Writer } from './writer.ts'

export class SqliteFacts implements Facts {
  readonly #writer: Writer
  readonly #statements: ReturnType<typeof prepareStatements>

  constructor(db: DatabaseSync, writer: Writer) {
    this.#writer = writer
    this.#statements = prepareStatements(db)
  }

  get(name: string): Promise<string | undefined> {
    return this.#writer.read(() => this.#read(name))
  }

  change(name: string, present: string | undefined, value: string | undefined): Promise<string | undefined> {
    return this.#writer.write(() => {
      if (this.#read(name) !== present) return this.#read(name)
      if (value === undefined) this.#statements.remove.run(name)
      else this.#statements.set.run(name, value)
      return value
    })
  }

  #read(name: string): string | undefined {
    return (this.#statements.get.get(name) as { value: string } | undefined)?.value
  }
}

function prepareStatements(db: DatabaseSync) {
  return {
    get: db.prepare('SELECT value FROM store_facts WHERE name = ?'),
    set: db.prepare(
      'INSERT INTO store_facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    ),
    remove: db.prepare('DELETE FROM store_facts WHERE name = ?'),
  }
}
