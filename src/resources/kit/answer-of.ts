import { z } from "zod";

/**
 * The schema of an answer after that of what is written: the same type, description and example, without limits and defaults.
 * Limits bind what is written from now on; what was written before them is answered all the same. `textOf` says what stands
 * for a text.
 */
export function answerOf(written: z.ZodType, textOf: () => z.ZodType = () => z.string()): z.ZodType {
  const { description, example } = written.meta() ?? {};
  const meta = {
    ...(description !== undefined && { description }),
    ...(example !== undefined && { example }),
  };
  const answer = unlimited(written, textOf);
  return Object.keys(meta).length > 0 ? answer.meta({ ...answer.meta(), ...meta }) : answer;
}

function unlimited(written: z.ZodType, textOf: () => z.ZodType): z.ZodType {
  const inner = (schema: unknown): z.ZodType => answerOf(schema as z.ZodType, textOf);
  if (written instanceof z.ZodDefault || written instanceof z.ZodOptional) return inner(written.unwrap());
  if (written instanceof z.ZodNullable) return inner(written.unwrap()).nullable();
  if (written instanceof z.ZodArray) return z.array(inner(written.element));
  if (written instanceof z.ZodObject) {
    const fields = Object.entries(written.shape as Record<string, z.ZodType>);
    return z.object(Object.fromEntries(fields.map(([name, field]) => [name, memberOf(field, inner)])));
  }
  if (written instanceof z.ZodString || written instanceof z.ZodStringFormat) return textOf();
  if (written instanceof z.ZodNumberFormat) return z.int();
  if (written instanceof z.ZodNumber) return z.number();
  if (written instanceof z.ZodUnknown) return z.unknown();
  return written;
}

/** A member that may be left out may be missing from what was stored. */
const memberOf = (field: z.ZodType, inner: (schema: z.ZodType) => z.ZodType): z.ZodType =>
  field instanceof z.ZodOptional ? inner(field).optional() : inner(field);
