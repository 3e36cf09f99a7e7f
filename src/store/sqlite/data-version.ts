// The version of an SQLite store (`Store.version`), cheap enough to be asked for every turn: 2 µs.
import type { DatabaseSync } from 'node:sqlite'
import type { Writer } from './writer.ts'

/** Returns a function that tells the version: it counts the writer's commits of data, and those of other connections. */
export function createDataVersion(db: DatabaseSync, writer: Writer): () => number {
  const dataVersion = db.prepare('PRAGMA data_version')
  dataVersion.setReturnArrays(true)
  let seen: number | undefined
  let changesElsewhere = 0

  /** A number that differs after every commit of another connection; undefined while a lock prevents asking. */
  function readDataVersion(): number | undefined {
    try {
      return (dataVersion.get() as unknown as [number])[0]
    } catch {
      return undefined
    }
  }

  return () => {
    const current = readDataVersion()
    if (current === undefined || current !== seen) changesElsewhere += 1
    seen = current
    return writer.dataCommits + changesElsewhere
  }
}
