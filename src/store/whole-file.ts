// Writes files atomically, for backups and exports: a file is complete or missing.
import { randomUUID } from 'node:crypto'
import { closeSync, fsyncSync, lstatSync, openSync, renameSync, rmSync } from 'node:fs'
import { platform } from 'node:os'
import { dirname } from 'node:path'

/**
 * Calls `write` with a temporary name, syncs that file to the disk, and then renames it to `file`. So an interrupted file
 * is never taken for a complete one. If `write` fails, an earlier `file` stays.
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

/**
 * Whether a file of this name can be replaced, if there is one: not a device or a pipe, such as /dev/null, nor a folder, nor a
 * symbolic link, such as /dev/stdout, which the rename would replace in place of the file that it leads to.
 */
export function isReplaceable(file: string): boolean {
  try {
    return lstatSync(file).isFile()
  } catch {
    // Nothing is there, or the attempt to write will fail with the reason.
    return true
  }
}

function sync(path: string, mode: 'r' | 'r+'): void {
  const descriptor = openSync(path, mode)
  fsyncSync(descriptor)
  closeSync(descriptor)
}
