/** Replacements for Ajv keywords that differ from the JSON Schema specification. */
import { _, type CodeKeywordDefinition, type KeywordCxt, Name, str } from "ajv";
import { not } from "ajv/dist/compile/codegen/index.js";
import { isMultipleOf } from "./multiple-of.ts";

/** Expression with which generated code calls `isMultipleOf`. `evaluate.ts` provides the `require` function of that code. */
const CALLED_IN_CODE = _`require("multiple-of").isMultipleOf`;
/** Ajv's code for a data property that is an array index. The code for a member name follows. */
const INDEX = 0;
const NAME = 1;

/**
 * `multipleOf` with decimal arithmetic. With Ajv's binary arithmetic, 36 of the 100 amounts from 19.00 to 19.99 are not multiples
 * of 0.01.
 */
const multipleOf: CodeKeywordDefinition = {
  keyword: "multipleOf",
  type: "number",
  schemaType: "number",
  error: {
    message: ({ schemaCode }) => str`must be multiple of ${schemaCode}`,
    params: ({ schemaCode }) => _`{multipleOf: ${schemaCode}}`,
  },
  code(cxt) {
    const decide = cxt.gen.scopeValue("func", { ref: isMultipleOf, code: CALLED_IN_CODE });
    cxt.pass(_`${decide}(${cxt.data}, ${cxt.schemaCode})`);
  },
};

/**
 * `if` that marks the validated items and properties as evaluated even without `then` and `else`, as the specification requires.
 * Ajv's own `if` does not.
 */
const conditional: CodeKeywordDefinition = {
  keyword: "if",
  schemaType: ["object", "boolean"],
  trackErrors: true,
  error: {
    message: ({ params }) => str`must match "${params.clause}" schema`,
    params: ({ params }) => _`{failingKeyword: ${params.clause}}`,
  },
  code(cxt) {
    const { gen, parentSchema } = cxt;
    const valid = gen.let("valid", true);
    const clause = gen.let("clause");
    cxt.setParams({ clause });
    const holds = gen.name("_valid");
    const condition = cxt.subschema(
      { keyword: "if", compositeRule: true, createErrors: false, allErrors: false },
      holds,
    );
    cxt.mergeValidEvaluated(condition, holds);
    cxt.reset();
    const apply = (keyword: "then" | "else") => (): void => {
      if (parentSchema[keyword] === undefined) return;
      const chosen = cxt.subschema({ keyword }, holds);
      gen.assign(valid, holds);
      cxt.mergeValidEvaluated(chosen, valid);
      gen.assign(clause, _`${keyword}`);
    };
    gen.if(holds, apply("then"), apply("else"));
    cxt.pass(valid, () => cxt.error(true));
  },
};

/** `unevaluatedItems` that also works if the number of evaluated items is only known at run time. */
const unevaluatedItems: CodeKeywordDefinition = {
  keyword: "unevaluatedItems",
  type: "array",
  schemaType: ["boolean", "object"],
  error: {
    message: ({ params }) => str`must NOT have more than ${params.evaluated} items`,
    params: ({ params }) => _`{limit: ${params.evaluated}}`,
  },
  code(cxt) {
    const { gen, data, it, schema } = cxt;
    const { items } = it;
    if (items === true) return;
    const length = gen.const("len", _`${data}.length`);
    const evaluated =
      items instanceof Name
        ? gen.const("evaluated", _`${items} === true ? ${length} : ${items} || 0`)
        : _`${items ?? 0}`;
    cxt.setParams({ evaluated });
    if (schema === false) cxt.pass(_`${length} <= ${evaluated}`);
    else if (schema !== true) {
      const valid = gen.var("valid", true);
      gen.forRange("i", evaluated, length, (index) => applyToRest(cxt, index, INDEX, valid));
      cxt.ok(valid);
    }
    it.items = true;
  },
};

/** `unevaluatedProperties` that also works for property names which every object inherits, such as "constructor". */
const unevaluatedProperties: CodeKeywordDefinition = {
  keyword: "unevaluatedProperties",
  type: "object",
  schemaType: ["boolean", "object"],
  error: {
    message: "must NOT have unevaluated properties",
    params: ({ params }) => _`{unevaluatedProperty: ${params.unevaluatedProperty}}`,
  },
  code(cxt) {
    const { gen, data, it, schema } = cxt;
    const { props } = it;
    if (props === true) return;
    const valid = gen.var("valid", true);
    const applyTo = (name: Name): void => {
      if (schema === false) {
        cxt.setParams({ unevaluatedProperty: name });
        cxt.error();
        gen.assign(valid, false).break();
      } else applyToRest(cxt, name, NAME, valid);
    };
    const applyToAll = (isLeft: (name: Name) => ReturnType<typeof _>) =>
      gen.forIn("key", data, (name) => gen.if(isLeft(name), () => applyTo(name)));
    if (schema !== true) {
      if (props instanceof Name) {
        const has = _`Object.prototype.hasOwnProperty.call`;
        gen.if(_`${props} !== true`, () => applyToAll((name) => _`!${props} || !${has}(${props}, ${name})`));
      } else {
        const known = Object.keys(props ?? {});
        applyToAll((name) => known.reduce((left, each) => _`${left} && ${name} !== ${each}`, _`true`));
      }
    }
    it.props = true;
    cxt.ok(valid);
  },
};

/**
 * Generates code that validates one item or member that no other keyword has evaluated, against the schema of `unevaluatedItems` or
 * `unevaluatedProperties`.
 */
function applyToRest(cxt: KeywordCxt, dataProp: Name, dataPropType: number, valid: Name): void {
  cxt.subschema({ keyword: cxt.keyword, dataProp, dataPropType }, valid);
  cxt.gen.if(not(valid), () => cxt.gen.break());
}

export const OWN_KEYWORDS: Readonly<Record<"draft-07" | "2020-12", readonly CodeKeywordDefinition[]>> = {
  "draft-07": [multipleOf],
  "2020-12": [multipleOf, conditional, unevaluatedItems, unevaluatedProperties],
};
