// Our TypeBox schemas as plain JSON Schema.

/** TypeBox schemas are JSON Schema but for our bigint, which is an int64 on the wire. */
export function toJsonSchema(schema: object): Record<string, unknown> {
  const mapped = Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => [keyword, keyword === 'properties' ? mapEach(value) : value]),
  )
  return mapped['type'] === 'bigint' ? { ...mapped, type: 'integer', format: 'int64' } : mapped
}

function mapEach(schemas: Record<string, object>): object {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, toJsonSchema(schema)]))
}
