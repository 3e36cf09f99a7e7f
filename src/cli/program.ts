// How the program was called, for hints that can be typed again.
import { basename, delimiter, dirname, isAbsolute, relative } from 'node:path'

/**
 * Returns the bare name for a program that the shell finds by itself, else the path as it was typed. `called` is the
 * launcher's own name; without a launcher, as in `npm start`, the one in `launcher` is named from the working directory.
 */
export function programName(called: string | undefined, launcher: string, folder: string, searchPath = ''): string {
  const typed = called ?? relative(folder, launcher)
  const isFound = isAbsolute(typed) && searchPath.split(delimiter).includes(dirname(typed))
  const name = isFound ? basename(typed) : typed
  return /^[\w./@:\\+-]+$/.test(name) ? name : `'${name}'`
}
