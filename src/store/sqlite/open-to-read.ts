// Opens a database file so that nothing changes: not the database, not its -wal and -shm, and not which of them there are.
import { existsSync } from 'node:fs'
import { platform } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { followLinks } from './database-files.ts'
import { LOCK_WAIT_MS, pauseThread } from './failures.ts'
import { hasCommits } from './read-log.ts'

/** SQLite's answer where no process has the database open and the log has no whole header. */
const SQLITE_PROTOCOL = 15

/**
 * Opens the database with what its log has. A read-only connection neither copies the log to the database nor removes it, but it creates
 * what is missing of -wal and -shm. With both, it only reads them: if no other process has them open, SQLite keeps an index of the log in
 * memory, and a lock that prevents checkpoints. Without a -shm, none has the database open: then there are no locks, and the
 * log is read with an index in memory if it has a commit, or not at all.
 */
export function openToRead(path: string, withLog = true, attempts = 20): DatabaseSync {
  if (withLog && isShared(path)) {
    const db = open(path, 'readonly_shm=1')
    try {
      db.prepare('SELECT 1 FROM sqlite_schema').get()
      return db
    } catch (error) {
      db.close()
      const isLeft = (error as { errcode?: number }).errcode === SQLITE_PROTOCOL
      if (!isLeft && attempts === 1) throw error
      // A process that begins or ends changes which files there are.
      if (!isLeft) {
        pauseThread()
        return openToRead(path, withLog, attempts - 1)
      }
    }
  } else if (withLog && hasCommits(path)) {
    // Closing fails to copy the log to a file that is open for reading. A log without commits it would remove.
    const db = open(path, `vfs=${platform() === 'win32' ? 'win32' : 'unix'}-none`)
    db.exec('PRAGMA locking_mode = EXCLUSIVE')
    return db
  }
  return open(path, 'immutable=1')
}

function open(path: string, parameter: string): DatabaseSync {
  const url = pathToFileURL(followLinks(path))
  url.search = parameter
  return new DatabaseSync(url, { readOnly: true, timeout: LOCK_WAIT_MS.command })
}

/** Whether a process may have the database open: each has -wal and -shm. */
function isShared(path: string): boolean {
  return ['-wal', '-shm'].every((ending) => existsSync(followLinks(path) + ending))
}
