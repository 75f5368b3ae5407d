/** The topic rules that ship, for tests of the code domain. */
import { readTopicRules } from '../src/domain/azr/index.js';

export const TOPIC_RULES = readTopicRules('data/topics/code-2.json');
