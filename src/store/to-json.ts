// JSON for a database: an int64 is written as text, since a JSON number may lose its last digits on the way.

export function toJson(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) => (typeof part === 'bigint' ? String(part) : part))
}
