"""
Fits, metrics and diversity as scikit-learn, SciPy and NLTK compute them.
    measures.py sklearn IN.json     IN: {fits, metrics, proportions, means}
    measures.py nltk IN.json        IN: {texts: [string], sets: [[string]], skeletons: [[[word]]]}
One line of JSON: the same cases with the peer's numbers; null where the peer has none.
"""

import json
import math
import re
import sys
import warnings


def number(x):
    return float(x) if math.isfinite(x) else None


def fit_of(case):
    import numpy
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    features = numpy.array(case["features"])
    scaler = StandardScaler().fit(features)
    features = scaler.transform(features)
    # scikit-learn minimises C · Σ loss + ‖w‖²/2; a probe mean loss + l2 · ‖w‖²/2.
    model = LogisticRegression(C=1 / (case["l2"] * len(features)), tol=1e-10, max_iter=100_000)
    model.fit(features, case["targets"])
    return {
        "mean": scaler.mean_.tolist(),
        "sd": scaler.scale_.tolist(),
        "weights": model.coef_.ravel().tolist(),
        "offsets": model.intercept_.tolist(),
        "logProbabilities": model.predict_log_proba(features).ravel().tolist(),
        "classes": [int(c) for c in model.classes_],
    }


def metrics_of(case):
    import numpy
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

    labels, p = numpy.array(case["labels"]), numpy.array(case["probabilities"])
    result = {
        # Defined with both classes alone; scikit-learn gives average precision 0, with a warning, where nothing is positive.
        "auroc": number(roc_auc_score(labels, p)),
        "averagePrecision": number(average_precision_score(labels, p)) if labels.any() else None,
        "brier": number(brier_score_loss(labels, p)),
        "logLoss": number(log_loss(labels, p, labels=[0, 1])) if 0 < p.min() and p.max() < 1 else None,
        "ece": None,
    }
    # Its quantile edges fall between rows as equal mass does where no two are equal and the bins divide the rows.
    if len(set(p)) == len(p) and len(p) % case["bins"] == 0:
        observed, predicted = calibration_curve(labels, p, n_bins=case["bins"], strategy="quantile")
        result["ece"] = number(numpy.abs(observed - predicted).mean())
    return result


def sklearn(given):
    import numpy
    from scipy.stats import binomtest, t

    def mean_of(values):
        values = numpy.array(values)
        half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
        return [values.mean() - half, values.mean() + half]

    return {
        "fits": [fit_of(case) for case in given["fits"]],
        "metrics": [metrics_of(case) for case in given["metrics"]],
        "proportions": [list(binomtest(k, n).proportion_ci(method="wilson")) for k, n in given["proportions"]],
        "means": [mean_of(values) for values in given["means"]],
    }


def nltk(given):
    from nltk.metrics.distance import jaccard_distance
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
    from nltk.util import ngrams

    # By Python's own expressions: those of NLTK's tokenizer count other characters as words.
    tokenize = re.compile(r"\n *|[A-Za-z_]+|\d+|[^\w\s]").findall
    smoothing = SmoothingFunction(epsilon=0.1).method1

    def set_of(texts):
        words = [tokenize(text) for text in texts]
        result = {"selfBleu3": None}
        if len(words) > 1:
            others = lambda i: words[:i] + words[i + 1 :]
            scores = [sentence_bleu(others(i), text, (1 / 3,) * 3, smoothing_function=smoothing) for i, text in enumerate(words)]
            result["selfBleu3"] = sum(scores) / len(scores)
        for n in (1, 2, 3):
            grams = [gram for text in words for gram in ngrams(text, n)]
            result[f"distinct{n}"] = len(set(grams)) / len(grams) if grams else None
        return result

    def shingles(words):
        return set(ngrams(words, 3)) or {tuple(words)}

    def nearest_of(skeletons):
        """Of each the largest similarity to one before it; 0 of the first."""
        sets = [shingles(words) for words in skeletons]
        return [max([0.0] + [1 - jaccard_distance(a, b) for b in sets[:i]]) for i, a in enumerate(sets)]

    return {
        "words": [tokenize(text) for text in given["texts"]],
        "sets": [set_of(texts) for texts in given["sets"]],
        "nearest": [nearest_of(skeletons) for skeletons in given["skeletons"]],
    }


warnings.simplefilter("ignore")
with open(sys.argv[2], encoding="utf-8") as file:
    asked = json.load(file)
print(json.dumps({"sklearn": sklearn, "nltk": nltk}[sys.argv[1]](asked)))
