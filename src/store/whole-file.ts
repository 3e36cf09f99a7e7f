// Writes files that are whole or not there at all, for backups and exports.
import { randomUUID } from 'node:crypto'
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { platform } from 'node:os'
import { dirname } from 'node:path'

/**
 * Calls `write` with another name, and gives the file its own name once it is on the disk: an interrupted one never passes
 * for a whole one, and if `write` fails, an earlier file of this name is still there.
 */
export async function writeWholeFile<T>(file: string, write: (partial: string) => T | Promise<T>): Promise<T> {
  const partial = `${file}.${randomUUID()}.partial`
  try {
    const result = await write(partial)
    sync(partial, 'r+')
    renameSync(partial, file)
    // Makes the file's name durable. Windows can't open a folder, and keeps names in its journal.
    if (platform() !== 'win32') sync(dirname(file), 'r')
    return result
  } finally {
    rmSync(partial, { force: true })
  }
}

function sync(path: string, mode: 'r' | 'r+'): void {
  const descriptor = openSync(path, mode)
  fsyncSync(descriptor)
  closeSync(descriptor)
}
