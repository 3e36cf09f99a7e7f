// Reads the version of an SQLite store (`Store.version`). A read takes 2 µs, cheap enough for every turn of the event loop.
import type { DatabaseSync } from 'node:sqlite'
import type { Writer } from './writer.ts'

/** Returns a function that reads the version: the writer's commits of data plus the changes by other connections. */
export function createDataVersion(db: DatabaseSync, writer: Writer): () => number {
  const dataVersion = db.prepare('PRAGMA data_version')
  dataVersion.setReturnArrays(true)
  let seen: number | undefined
  let otherChanges = 0

  /** Returns a number that differs after every commit of another connection; undefined while a lock prevents reading it. */
  function readDataVersion(): number | undefined {
    try {
      return (dataVersion.get() as unknown as [number])[0]
    } catch {
      return undefined
    }
  }

  return () => {
    const current = readDataVersion()
    if (current === undefined || current !== seen) otherChanges += 1
    seen = current
    return writer.dataCommits + otherChanges
  }
}
