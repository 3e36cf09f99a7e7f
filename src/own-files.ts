// The files that belong to the program beside its code, such as migrations and styles. They lie in the folder of the code, in a
// checkout and in the package; the executable holds them inside. Nothing else reads them (test/repository/imports.test.ts).
import { readdirSync, readFileSync } from 'node:fs'
import { getAssetKeys, getRawAsset, isSea } from 'node:sea'

const FOLDER = new URL('.', import.meta.url)

/** Returns the content of a file; `path` is relative to this folder. */
export function readOwnFile(path: string): Buffer {
  return isSea() ? Buffer.from(getRawAsset(path)) : readFileSync(new URL(path, FOLDER))
}

/** Returns the names of the files in a folder, which ends in a slash. */
export function listOwnFiles(folder: string): string[] {
  if (!isSea()) return readdirSync(new URL(folder, FOLDER))
  return getAssetKeys().flatMap((path) => (path.startsWith(folder) ? [path.slice(folder.length)] : []))
}
