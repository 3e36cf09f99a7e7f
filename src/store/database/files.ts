// Reads small files, such as of settings, secrets and certificates, and writes backups and exports whole: complete or not at all.
import { randomUUID } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { platform } from 'node:os'
import { dirname } from 'node:path'

const MOST_BYTES = 1024 * 1024

/** Returns the reason of a failure in words: without the code of the error, and the path, which may be that of a temporary file. */
export function reasonOf({ message }: Error): string {
  return message.replace(/^E[A-Z0-9]+: (.*?)(?:, \w+(?: '.*)?)?$/s, '$1')
}

/**
 * Reads a regular file in UTF-8, also through a symbolic link. Throws for any other: a pipe could hang the program, a device may have
 * no end, and a setting in UTF-16 would be ignored.
 */
export function readSmallFile(path: string): string {
  const file = statSync(path)
  if (!file.isFile()) throw new Error('it is a folder, a pipe or a device, not a regular file')
  if (file.size > MOST_BYTES) throw new Error(`it has ${file.size} bytes, more than the allowed ${MOST_BYTES}`)
  return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
}

/**
 * Returns a temporary name, `partial`, for what becomes `file` when it is complete: an interrupted file is never taken for a complete one.
 * Disposing removes what has this name, or this name with one of the endings.
 */
export function beside(file: string, endings: readonly string[] = []) {
  const partial = `${file}.${randomUUID()}.partial`
  return {
    partial,
    /** Syncs the file to the disk, and then gives it its name. Returns false if there is one that it may not replace. */
    place(mayReplace = true): boolean {
      sync(partial, 'r+')
      let isLinked = false
      try {
        // Unlike a rename, a link never replaces the file of another process.
        if (!mayReplace) linkSync(partial, file)
        isLinked = !mayReplace
      } catch {
        if (existsSync(file)) return false
        // Some file systems have no links.
      }
      if (!isLinked) renameSync(partial, file)
      syncFolder(dirname(file))
      return true
    },
    [Symbol.dispose]() {
      try {
        for (const ending of ['', ...endings]) rmSync(partial + ending, { force: true })
      } catch {
        // Whoever could not write it tells the reason, such as a folder that is a file.
      }
    },
  }
}

/** Calls `write` with a temporary name, and gives the file its name when it is complete. If `write` fails, an earlier `file` stays. */
export async function writeWholeFile<T>(file: string, write: (partial: string) => T | Promise<T>): Promise<T> {
  using whole = beside(file)
  const result = await write(whole.partial)
  whole.place()
  return result
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

/** Makes the names in a folder durable. Windows can't open a folder, and keeps names in its journal. */
function syncFolder(path: string): void {
  if (platform() !== 'win32') sync(path, 'r')
}

function sync(path: string, mode: 'r' | 'r+'): void {
  const descriptor = openSync(path, mode)
  fsyncSync(descriptor)
  closeSync(descriptor)
}
