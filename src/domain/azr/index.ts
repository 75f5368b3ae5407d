/** What other rooms use of the code domain. */
export { mapBounded } from './bounded.js';
export { checkFile, type CheckFileReport } from './check-file.js';
export { createCodeDomain } from './code-domain.js';
export { gradeFile, type GradeReport, type GradeType } from './grade-file.js';
export { plainTask } from './plain-program.js';
export { readJsonLines } from './jsonl.js';
export { codeDomainSchema, TASK_TYPES } from './settings.js';
export { readRecordedTask } from './recorded-task.js';
export { equalsRecorded } from './recorded-value.js';
export { readTopicRules, type TopicRules } from './topics.js';
export { computedOutput, type CodeTask } from './task.js';
